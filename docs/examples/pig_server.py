"""Serves Pig, a dice game, to the league: .venv/bin/python docs/examples/pig_server.py PORT

In a turn, a player rolls a die as often as it likes, and then holds to bank the sum. A 1 ends the
turn, and the sum is lost. Who has banked 30 first has won.
"""

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np

from league.v1 import games_pb2 as pb
from league.v1 import games_pb2_grpc as rpc

TARGET = 30
ROLL, HOLD = range(2)


class Pig:
    def __init__(self, seed):
        self.luck = seed
        self.banked, self.sum, self.turn, self.outcome = [0, 0], 0, seed % 2, 0
        self.rewards = [0.0, 0.0]

    def die(self):  # mulberry32: the same numbers in every language
        self.luck = (self.luck + 0x6D2B79F5) & 0xFFFFFFFF
        x = (self.luck ^ self.luck >> 15) * (1 | self.luck) & 0xFFFFFFFF
        x ^= x + ((x ^ x >> 7) * (61 | x) & 0xFFFFFFFF) & 0xFFFFFFFF
        return 1 + (x ^ x >> 14) % 6

    def step(self, actions):
        self.rewards, me = [0.0, 0.0], self.turn
        if actions[me] == HOLD:
            self.banked[me] += self.sum
            self.rewards[me] = self.sum / TARGET
            if self.banked[me] >= TARGET:
                self.outcome = pb.OUTCOME_SEAT_0_WON + me
            self.sum, self.turn = 0, 1 - me
        elif (rolled := self.die()) == 1:
            self.sum, self.turn = 0, 1 - me
        else:
            self.sum += rolled

    def seen(self, seat):
        numbers = self.banked[seat], self.banked[1 - seat], self.sum
        return [*(min(1.0, number / TARGET) for number in numbers), float(self.turn == seat)]

    def legal(self, seat):
        return [1, int(self.sum > 0)] if self.turn == seat else [0, 0]


def response(matches):
    seen = [match.seen(seat) for match in matches for seat in (0, 1)]
    return pb.PlayResponse(
        observations=np.array(seen, "<f4").tobytes(),
        legal=bytes(bit for match in matches for seat in (0, 1) for bit in match.legal(seat)),
        rewards=np.array([match.rewards for match in matches], "<f4").tobytes(),
        outcomes=bytes(match.outcome for match in matches),
    )


class Server(rpc.GameServiceServicer):
    def DescribeGame(self, request, context):
        return pb.DescribeGameResponse(
            contract=1,
            name="pig",
            version="1",
            seats=2,
            observation_size=4,
            action_kind=pb.ACTION_KIND_CHOICE,
            action_names=["roll", "hold"],
            reward_terms=["banked"],
            max_frames=500,
            has_text=True,
            has_state=True,
        )

    def Play(self, requests, context):
        matches = {}  # by row
        for request in requests:
            kind = request.WhichOneof("request")
            asked = getattr(request, kind)
            if kind == "text":
                match = matches[asked.row]
                yield pb.PlayResponse(text=f"{match.banked}, {match.sum} in this turn")
                continue
            if kind == "save":
                states = [json.dumps(vars(matches[row])).encode() for row in asked.rows]
                yield pb.PlayResponse(states=states)
                continue
            for place, row in enumerate(asked.rows):
                if kind == "begin":
                    matches[row] = Pig(asked.seeds[place])
                elif kind == "load":
                    matches[row] = Pig(0)
                    vars(matches[row]).update(json.loads(asked.states[place]))
                else:
                    matches[row].step(asked.actions[2 * place : 2 * place + 2])
            yield response([matches[row] for row in asked.rows])


if __name__ == "__main__":
    # up to 16 processes of the league at once, and no second server on the port
    server = grpc.server(ThreadPoolExecutor(16), options=[("grpc.so_reuseport", 0)])
    rpc.add_GameServiceServicer_to_server(Server(), server)
    print("ready", server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}"), flush=True)
    server.start()
    threading.Event().wait()
