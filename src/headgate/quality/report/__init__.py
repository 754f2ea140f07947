"""The report of one quality run: as a page, as JSON and as text, all three from one object.

`model` is that object, `build` makes it from plain values, `rows` chooses and masks failing rows, `page`
renders it, `gather` collects the values from ops store and lake and writes the files.
"""
