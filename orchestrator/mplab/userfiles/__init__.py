"""Read users' files: strict YAML with line numbers, inheritance, variables, units.

Belongs here: models of files that people write, and every check that needs no machine and no network. Not here: files
that mplab writes (`format`), which also has the campaign file; what a driver does with its settings (`drivers`).

* Every file: `strict`.
* One package for each kind of file: `experiments`, `links`, `labs`.
"""
