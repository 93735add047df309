"""Read users' files: strict YAML with line numbers, inheritance, variables, units.

Belongs here: models of files that people write, and every check that needs no machine and no network. Not here: files
that mplab writes (`format`), which also has the campaign file; what a driver does with its settings (`drivers`).

* Every file: `yaml`, `check`, `inherit`, `explain`.
* Experiment files: `experiment` (models), `layers` and `variables` (before validation), `resolve` (names), `labels`,
  `budgets`, `transport`, `app`.
* Link conditions: `link`, `pathfile`, `changes`, `sweep`, `timeline`.
* Lab files: `lab`, `labuse`, `machines`, `machine_fields`, `phone`, `proxyfile`, `internet`.
"""
