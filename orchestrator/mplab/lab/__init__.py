"""Open labs: the phone, shapers, proxy and origin with which an experiment runs.

The virtual lab needs only this machine.

Belongs here: how the parts of a lab are put together and started. Not here: the parts (`drivers`), their settings in a
lab file (`userfiles`), the cells that run in a lab (`cell`, `run`).

* Interface and kinds: `protocol`, `driver` (kinds of phone, with their settings), `phones`, `catalog`, `resources`.
* Common code of labs: `base`, `android`, `devtools`, `hosting`, `network` and `topology` (virtual lab), `init` (its
  first process).
* For people: `doctor`, `session` (``mplab lab up``), `find` (running labs), `sensitivity`.
"""
