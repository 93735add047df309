"""Bundle a run into one archive that others can check, analyse again and run again (docs/reproduce.md).

`contents` lists the files of a run that go in. `checksums`, `rocrate` and `archive` each handle one format. `anonymise`
replaces addresses and names. `write` makes a bundle, `read` opens one, `rebuild` makes its report again, and
`agreement` compares the results of a second run with the first.
"""
