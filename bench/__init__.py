"""How fast and how small Treppe is, beside its peers and beside the bare minimum, in one run on one machine.

`python3 dev.py bench` runs all of it. Only ratios travel from machine to machine, so the targets are ratios, and what
is compared takes turns. A measure is a module in ``bench/measures``, a peer (or a further store of Treppe's) a module
in ``bench/peers``; everything measured runs in a fresh process on a fresh folder.
"""
