"""Cheroot with the application."""

import os

from cheroot.ssl.builtin import BuiltinSSLAdapter
from cheroot.wsgi import Server
from wsgi import application

server = Server(
    (os.environ["HOST"], int(os.environ["PORT"])), application, timeout=int(os.environ["IDLE"])
)
if "CHAIN" in os.environ:
    server.ssl_adapter = BuiltinSSLAdapter(os.environ["CHAIN"], os.environ["KEY"])
server.start()
