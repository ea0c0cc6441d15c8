"""The service with short deadlines for the head and the body of a request."""

from scheduling import request_deadlines
from scheduling.wsgi import application

request_deadlines.HEAD_SECONDS = 1.0
request_deadlines.BODY_SECONDS = 1.0

__all__ = ["application"]
