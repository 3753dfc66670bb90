"""The same calls over HTTP: starlette on hypercorn's trio server, over a unix socket too.  ``python http_peer.py SOCKET HOME``"""

from __future__ import annotations

import json
import sys
from functools import partial

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import memoryd


async def ping(request: Request) -> JSONResponse:
    await request.json()
    return JSONResponse(None)


async def sync_turn(runtime: memoryd.Runtime, request: Request) -> JSONResponse:
    params = json.loads(await request.body())
    with memoryd.scope(**params["scope"]):
        accepted = runtime.sync_turn(params["user"], params["assistant"])
    return JSONResponse({"state": accepted.state, "seq": accepted.seq, "event_id": accepted.event_id, "reason": accepted.reason})


async def main() -> None:
    config = Config()
    config.bind = [f"unix:{sys.argv[1]}"]
    config.keep_alive_max_requests = 10**9
    config.accesslog = config.errorlog = None
    async with memoryd.open_runtime(sys.argv[2]) as runtime:

        async def answer(request: Request) -> JSONResponse:
            return await sync_turn(runtime, request)

        app = Starlette(routes=[Route("/ping", ping, methods=["POST"]), Route("/sync_turn", answer, methods=["POST"])])
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(serve, app, config))  # type: ignore[arg-type]
            print("ready", flush=True)


if __name__ == "__main__":
    trio.run(main)
