import urllib.error
import urllib.request

import common

for url in common.GETS:
    try:
        with urllib.request.urlopen(url, timeout=30) as reply:
            print(reply.status, reply.read().decode())
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
        error.close()
request = urllib.request.Request(common.CHAT, common.BODY.encode(), common.HEADERS)
with urllib.request.urlopen(request, timeout=30) as stream:
    print(stream.status, stream.read())
