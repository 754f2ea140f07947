"""Accepted filters as files in a git repository of ours, with a commit for each version.

`repository` runs git and makes objects, `store` moves the branch and talks to the remote, `sync` keeps git and the
ops store in agreement: commits from the outbox, drift, and its repair.
"""
