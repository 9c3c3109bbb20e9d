"""A WebSocket server of aiohttp that sends each text back. It prints its port."""
import asyncio
import os
import ssl

from aiohttp import WSMsgType, web


async def talk(request):
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type == WSMsgType.TEXT:
            await socket.send_str(message.data)
    return socket


async def main():
    application = web.Application()
    application.router.add_get("/talk", talk)
    runner = web.AppRunner(application)
    await runner.setup()
    context = None
    if "CHAIN" in os.environ:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.environ["CHAIN"], os.environ["KEY"])
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
