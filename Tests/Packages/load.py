#!/usr/bin/env python3
"""Sends requests until standard input ends, and prints how many there were and which failed, as JSON.

    load.py URL

Half of the clients open a connection for each request, the others keep theirs.
"""

import http.client
import json
import sys
import threading
import urllib.parse

CLIENTS = 6


def client(url, keeps, stop, results):
    connection, sent, failed = None, 0, []
    while not stop.is_set():
        try:
            connection = connection or http.client.HTTPConnection(url.hostname, url.port, timeout=10)
            connection.request("GET", url.path)
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                failed.append(f"status {response.status}")
            is_over = not keeps or response.will_close
        except (OSError, http.client.HTTPException) as error:
            # A connection that was idle when the server closed it is no failed request: a client sends it again.
            if not (keeps and connection_was_used(connection) and isinstance(error, http.client.RemoteDisconnected)):
                failed.append(repr(error))
            is_over = True
        sent += 1
        if is_over and connection:
            connection.close()
            connection = None
        elif connection:
            connection.was_used = True
        stop.wait(0.002)
    results.append((sent, failed))


def connection_was_used(connection):
    return getattr(connection, "was_used", False)


def main():
    url = urllib.parse.urlsplit(sys.argv[1])
    stop, results = threading.Event(), []
    threads = [threading.Thread(target=client, args=(url, index % 2, stop, results)) for index in range(CLIENTS)]
    for thread in threads:
        thread.start()
    print("started", flush=True)
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()
    print(json.dumps({"sent": sum(sent for sent, _ in results), "failed": [text for _, texts in results for text in texts]}))


if __name__ == "__main__":
    sys.exit(main())
