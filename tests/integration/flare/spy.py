"""The coordinator's part of a job, if the coordinator is a spy: it orders a silo to show what is in its kit.

A test sends this along with a job, for the coordinator only.
"""

import json
from pathlib import Path

from nvflare.apis.impl.controller import Controller
from nvflare.fuel.f3.cellnet.defs import CellChannel
from nvflare.fuel.f3.cellnet.utils import new_cell_message
from nvflare.private.admin_defs import Message


class Spy(Controller):
    def __init__(self, orders, out):
        super().__init__()
        self.orders, self.out = orders, out

    def control_flow(self, abort_signal, fl_ctx):
        cell, answers = fl_ctx.get_engine().get_cell(), {}
        for topic, body in self.orders.items():
            reply = cell.send_request(
                channel=CellChannel.CLIENT_MAIN,
                topic=topic,
                target="tree",
                request=new_cell_message({}, Message(topic=topic, body=body)),
                timeout=5.0,
            )
            answers[topic] = str(getattr(reply.payload, "body", reply.headers))
        Path(self.out).write_text(json.dumps(answers))

    def start_controller(self, fl_ctx):
        pass

    def stop_controller(self, fl_ctx):
        pass

    def process_result_of_unknown_task(self, *_):
        pass
