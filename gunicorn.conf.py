"""Read by every gunicorn that is started in this folder."""

# Without the query and the referrer, where feeds' tokens and the signatures of links stand.
access_log_format = '%(h)s %(t)s "%(m)s %(U)s %(H)s" %(s)s %(b)s "%(a)s"'

# The most that it takes: a listing may be asked for with many names at once. Beyond it answers 414.
limit_request_line = 8190
