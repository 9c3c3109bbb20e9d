"""waitress with the application."""

import os

import waitress
from wsgi import application

waitress.serve(
    application,
    listen=os.environ["HOST"] + ":" + os.environ["PORT"],
    threads=8,
    channel_timeout=int(os.environ["IDLE"]),
    cleanup_interval=1,
)
