"""One command's work on many processes or machines: shards, their folder, and what hands them out.

Knows no simulator. What is done with a shard says a :class:`~manikin.spread.work.Work`; who does it says a
:class:`~manikin.spread.crew.Crew`.
"""
