"""The parts of a report that show what a method found out beside scores, one file for each kind of findings.

To give a method's findings a part, write a function from them and the run's `Results` to a `ReportPart`, and
register it here. A method without findings needs nothing: all else on the page comes with every run.
"""

from cosilo.methods.cofed import Votes
from cosilo.methods.dofed_spp.findings import Exchanges
from cosilo.methods.fedfomo import Affinity
from cosilo.methods.tempo import Pace
from cosilo.report.parts.affinity import show_affinity
from cosilo.report.parts.exchanges import show_exchanges
from cosilo.report.parts.pace import show_pace
from cosilo.report.parts.part import Card, Column, ReportPart, SiloColumn, Table, kinds, show
from cosilo.report.parts.votes import show_votes

__all__ = ["Card", "Column", "ReportPart", "SiloColumn", "Table", "kinds", "show"]

show.register(Votes, show_votes)
show.register(Exchanges, show_exchanges)
show.register(Affinity, show_affinity)
show.register(Pace, show_pace)
