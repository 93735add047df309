"""A run as one archive that others can check, analyse again and run again (docs/reproduce.md).

`contents` says what of a run goes in; `checksums`, `crate` and `archive` know a format each; `write` makes a bundle,
`read` opens one, `remake` makes its report again, `agree` puts the results of a second run beside those of the first.
"""
