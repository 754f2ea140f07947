"""Commands of filters: `group` is `headgate filters` with its verbs, `audit` is `headgate audit`.

`local` needs no API (check, compile, explain, consumer); the others ask it through `client`: `queries` look,
`changes` write and deploy, `review` is for the second person.
"""
