"""Each rule: programs that it is about, with the line, and near misses that it must leave alone."""

import pytest

from tapeproxy.shim.scan import RULES, scan

FOUND: list[tuple[str, str]] = [
    ("TP101", "import os\nprint(os.getpid())  #!"),
    ("TP101", "from os import getpid as g\nname = f'agent-{g()}'  #!"),
    ("TP101", "import os as o\np = o.getppid\nx = p()  #!"),
    ("TP101", "import threading\nprint(f'{threading.get_ident()}')  #!"),
    ("TP101", "import threading\nme = threading.get_ident()  #!\nprint(str(me))"),
    ("TP101", "import email.utils\nid = email.utils.make_msgid()  #!"),
    ("TP101", "from multiprocessing import current_process\nprint(current_process().pid)  #!"),
    ("TP101", "x = __import__('os').getpid()  #!"),
    ("TP101", "import importlib\nx = importlib.import_module('os').getpid()  #!"),
    ("TP101", "from os import *\nx = getpid()  #!"),
    ("TP101", "import os\nclass A:\n    os = 1\n    def f(self): return os.getpid()  #!"),
    ("TP101", "import ctypes\nx = ctypes.CDLL(None).getpid()  #!"),
    ("TP101", "try:\n    import os\nexcept ImportError:\n    os = None\nx = os.getpid()  #!"),
    ("TP102", "print(id(x))  #!"),
    ("TP102", "call({'key': f'{id(x):x}'})  #!"),
    ("TP102", "items = sorted(items, key=id)  #!"),
    ("TP102", "items.sort(key=hash)  #!"),
    ("TP102", "class A: pass\nprint(f'{A()}')  #!"),
    ("TP102", "class A:\n    def name(self):\n        return str(self)  #!"),
    ("TP102", "def tool(): pass\nprompt = f'use {tool}'  #!"),
    ("TP102", "class A: pass\nx = hash(A())  #!"),
    ("TP102", "x = object()\nprint(x)  #!"),
    ("TP103", "class A: pass\nfor x in {A(), A()}:  #!\n    use(x)"),
    ("TP103", "class A: pass\ns = set()\ns.add(A())\nl = list(s)  #!"),
    ("TP103", "def a(): pass\ndef b(): pass\nt = [f.__name__ for f in {a, b}]  #!"),
    ("TP103", "class A: pass\nclass B(A): pass\nnames = [t.__name__ for t in {A, B}]  #!"),
    (
        "TP103",
        "import asyncio\nasync def f(ts):\n    done, _ = await asyncio.wait(ts)\n    for t in done: use(t)  #!",
    ),
    ("TP103", "class A: pass\ns = {A() for _ in range(3)}\nx = s.pop()  #!"),
    ("TP104", "print(', '.join({'a', 'b'}))  #!"),
    ("TP104", "import json\nTAGS = {'a', 'b'}\nbody = json.dumps(list(TAGS))  #!"),
    ("TP201", "import numpy as np\nx = np.datetime64('now')  #!"),
    ("TP201", "import numpy\nNOW = 'today'\nx = numpy.datetime64(NOW)  #!"),
    ("TP201", "from whenever import Instant\nx = Instant.now()  #!"),
    ("TP201", "import ctypes\nlibc = ctypes.CDLL('libc.so.6')\nt = libc.time(None)  #!"),
    ("TP201", "import os\nx = os.times()  #!"),
    ("TP202", "db.execute(\"SELECT datetime('now')\")  #!"),
    ("TP202", "SQL = 'insert into t values (random())'\nc.execute(SQL)  #!"),
    ("TP202", "db.execute('create table t (at text default CURRENT_TIMESTAMP)')  #!"),
    ("TP202", "import duckdb\nduckdb.sql('select now()')  #!"),
    ("TP202", "from sqlalchemy import text\ns.execute(text('select gen_random_uuid()'))  #!"),
    ("TP203", "import os\nx = os.path.getmtime('a')  #!"),
    ("TP203", "x = path.stat().st_mtime  #!"),
    ("TP204", "import asyncio\nasync def f():\n    print(asyncio.get_running_loop().time())  #!"),
    ("TP301", "import _random\nr = _random.Random()  #!"),
    ("TP301", "import torch\nx = torch.randn(3)  #!"),
    ("TP301", "import torch\ntorch.manual_seed(1)\ntorch.seed()  #!"),
    ("TP301", "import tensorflow as tf\nx = tf.random.normal([3])  #!"),
    ("TP301", "import polars as pl\nx = pl.Series(v).sample(5)  #!"),
    ("TP301", "import ctypes\nx = ctypes.CDLL(None).rand()  #!"),
    ("TP302", "x = open('/dev/urandom', 'rb').read(8)  #!"),
    ("TP302", "from pathlib import Path\nx = Path('/proc/sys/kernel/random/uuid').read_text()  #!"),
    (
        "TP303",
        "from cryptography.hazmat.primitives.asymmetric import rsa\nk = rsa.generate_private_key(65537, 2048)  #!",
    ),
    (
        "TP303",
        "from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey as K\nk = K.generate()  #!",
    ),
    ("TP303", "from cryptography.hazmat.primitives.ciphers.aead import AESGCM\nk = AESGCM.generate_key(128)  #!"),
    ("TP303", "import bcrypt\ns = bcrypt.gensalt()  #!"),
    ("TP303", "import subprocess\nk = subprocess.check_output(['openssl', 'rand', '16'])  #!"),
    ("TP401", "import os\nfor n in os.listdir('.'):  #!\n    use(n)"),
    ("TP401", "from glob import glob\nx = glob('*.md')  #!"),
    ("TP401", "from pathlib import Path\nx = [p.name for p in Path('d').iterdir()]  #!"),
    ("TP401", "def f(folder):\n    return list(folder.rglob('*.txt'))  #!"),
    ("TP402", "import socket\nx = socket.gethostname()  #!"),
    ("TP402", "import psutil\nx = psutil.virtual_memory().available  #!"),
    ("TP402", "import platform\nprint(f'You are on {platform.system()}')  #!"),
    ("TP402", "import os\nx = os.uname().nodename  #!"),
    ("TP403", "x = open('/etc/hostname').read()  #!"),
    ("TP403", "import os\nx = open(os.path.expanduser('~/.config/agent')).read()  #!"),
    ("TP404", "import subprocess\nx = subprocess.run(['date', '+%s'], capture_output=True)  #!"),
    ("TP404", "import os\nx = os.popen('uuidgen').read()  #!"),
    ("TP404", "from subprocess import check_output as run\nx = run('/usr/bin/hostname -f', shell=True)  #!"),
    ("TP405", "x = input('? ')  #!"),
    ("TP405", "import sys\nx = sys.stdin.read()  #!"),
    (
        "TP501",
        "from concurrent.futures import as_completed\nfor f in as_completed(fs):  #!\n    out.append(f.result())",
    ),
    ("TP501", "import asyncio\nasync def f(ts):\n    for t in asyncio.as_completed(ts):  #!\n        print(await t)"),
    ("TP501", "import multiprocessing\np = multiprocessing.Pool()\nx = list(p.imap_unordered(f, xs))  #!"),
    (
        "TP501",
        "import asyncio\nasync def f(ts):\n    return await asyncio.wait(ts, return_when=asyncio.FIRST_COMPLETED)  #!",
    ),
    (
        "TP502",
        "import threading\nout = []\ndef work(n):\n    out.append(n)  #!\n"
        "for n in range(3): threading.Thread(target=work, args=(n,)).start()",
    ),
    (
        "TP502",
        "from threading import Thread\ndef work(out, n):\n    out.append(n)  #!\n"
        "def main():\n    out = []\n    ts = [Thread(target=work, args=(out, n)) for n in range(3)]",
    ),
    (
        "TP502",
        "from concurrent.futures import ThreadPoolExecutor\ncount = 0\n"
        "def work(n):\n    global count\n    count += 1  #!\n"
        "with ThreadPoolExecutor() as pool:\n    pool.map(work, range(3))",
    ),
    (
        "TP502",
        "import threading\nclass Crew:\n    def work(self):\n        self.out.append(1)  #!\n    def run(self):\n"
        "        for _ in range(2):\n            threading.Thread(target=self.work).start()",
    ),
    (
        "TP502",
        "import asyncio\nout = []\nasync def ask(n):\n    x = await call(n)\n    out.append(x)  #!\n"
        "async def main():\n    await asyncio.gather(*(ask(n) for n in range(3)))",
    ),
    (
        "TP502",
        "import threading\nout = []\ndef a(): out.append(1)  #!\ndef b(): out.append(2)  #!\n"
        "threading.Thread(target=a).start()\nthreading.Thread(target=b).start()",
    ),
    (
        "TP502",
        "import threading\nout = []\ndef keep(x):\n    out.append(x)  #!\ndef work():\n    keep(1)\n"
        "for _ in range(2): threading.Thread(target=work).start()",
    ),
    (
        "TP502",
        "import asyncio, itertools\nids = itertools.count()\ndef work():\n    return next(ids)  #!\n"
        "async def main():\n    return await asyncio.gather(*[asyncio.to_thread(work) for _ in range(3)])",
    ),
    (
        "TP503",
        "import random, threading\nrng = random.Random(7)\ndef work():\n    use(rng.random())  #!\n"
        "for _ in range(2): threading.Thread(target=work).start()",
    ),
    (
        "TP503",
        "import numpy as np\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "def work(n):\n    return np.random.rand()  #!\n"
        "with ThreadPoolExecutor() as pool:\n    x = list(pool.map(work, range(3)))",
    ),
    (
        "TP504",
        "import threading\nout, lock = [], threading.Lock()\ndef work():\n    with lock:\n        out.append(1)  #!\n"
        "for _ in range(2): threading.Thread(target=work).start()",
    ),
    ("TP505", "import polars as pl\nx = pl.DataFrame(d).filter(f).unique()  #!"),
    ("TP505", "import polars as pl\ndf = pl.read_csv('a.csv')\nx = df.group_by('a').len()  #!"),
    ("TP601", "import httpx\nc = httpx.Client(trust_env=False)  #!"),
    ("TP601", "import httpx\nc = httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(retries=3))  #!"),
    ("TP601", "import httpx\nc = httpx.Client(mounts={'all://': httpx.HTTPTransport()})  #!"),
    ("TP601", "import httpx\nx = httpx.get(url, proxy='http://10.0.0.1:8080')  #!"),
    ("TP601", "import openai, httpx\nc = openai.DefaultHttpxClient(transport=httpx.HTTPTransport())  #!"),
    ("TP601", "import requests\ns = requests.Session()\ns.trust_env = False  #!"),
    ("TP601", "import requests\nx = requests.get(url, proxies={'http': None, 'https': None})  #!"),
    ("TP601", "import urllib.request as u\no = u.build_opener(u.ProxyHandler({}))  #!"),
    ("TP601", "import urllib3\np = urllib3.PoolManager()  #!"),
    ("TP601", "import http.client\nc = http.client.HTTPSConnection('api.example.com')  #!"),
    ("TP602", "import os\nos.environ['NO_PROXY'] = '*'  #!"),
    ("TP602", "import os\nos.environ.pop('HTTPS_PROXY', None)  #!"),
    ("TP602", "from os import environ\ndel environ['https_proxy']  #!"),
    ("TP602", "import os\nos.environ.clear()  #!"),
    ("TP602", "import os\nos.environ.update({'no_proxy': 'example.com'})  #!"),
    ("TP603", "import socket\ns = socket.create_connection(('example.com', 443))  #!"),
    ("TP603", "import socket\ns = socket.socket()\ns.connect(('10.0.0.1', 5432))  #!"),
    ("TP603", "import grpc\nc = grpc.insecure_channel('example.com:1')  #!"),
    ("TP603", "import redis\nr = redis.Redis()  #!"),
    ("TP604", "import httpx\nc = httpx.Client(verify='/etc/ssl/mine.pem')  #!"),
    ("TP604", "import requests\ns = requests.Session()\ns.verify = 'ca.pem'  #!"),
    ("TP604", "import ssl\nc = ssl.create_default_context(cafile='ca.pem')  #!"),
    ("TP604", "import certifi, ssl\nc = ssl.create_default_context(cafile=certifi.where())  #!"),
    ("TP604", "import os\nos.environ['SSL_CERT_FILE'] = 'ca.pem'  #!"),
    ("TP605", "import subprocess, sys\nsubprocess.run([sys.executable, '-I', 'tool.py'])  #!"),
    ("TP605", "import os\nos.system('python3 -Es tool.py')  #!"),
    ("TP606", "from gevent import monkey  #!\nmonkey.patch_all()"),
    ("TP606", "import eventlet  #!"),
]

CLEAN = [
    "import websockets\nasync def f():\n    async with websockets.connect('wss://x') as w:\n        pass",
    # What the shim does tape.
    "import time, random, uuid, os\nprint(time.time(), random.random(), uuid.uuid4(), os.urandom(4))",
    "import time\nprint(time.clock_gettime(time.CLOCK_MONOTONIC), time.thread_time(), time.process_time())",
    "import numpy as np\nprint(np.random.rand(), np.random.default_rng().random(), np.random.RandomState().rand())",
    "import pandas as pd\nprint(pd.Timestamp.now(), pd.Timestamp('now'), df.sample(3))",
    "import pendulum\nprint(pendulum.now())",
    "from cryptography.fernet import Fernet\nprint(Fernet.generate_key())",
    "import uuid\nprint(uuid.getnode(), uuid.uuid1())",
    "import aiohttp\ns = aiohttp.ClientSession(trust_env=False)",
    "import aiohttp\ns = aiohttp.ClientSession()\ns.trust_env = False",
    "import subprocess, sys\nsubprocess.run([sys.executable, 'tool.py'], env={'A': 'b'})",
    "import requests\nrequests.get(url, proxies={})",
    "import random\nr = random.Random()\nprint(r.random(), random.SystemRandom().random())",
    # Identities that nobody sees.
    "import os\nif os.getpid() != owner: pass",
    "import os\nclass A:\n    def __init__(self):\n        self._pid = os.getpid()\n"
    "    def check(self):\n        return self._pid == 1",
    "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "import os, psutil\np = psutil.Process(os.getpid())",
    "import os\nme = os.getpid()\nif me == other: pass",
    "import threading\nlocals_ = {}\nlocals_[threading.get_ident()] = 1",
    "seen = set()\nseen.add(id(x))\nif id(x) in seen: pass",
    "memo[id(x)] = x",
    "def getpid(): return 1\nprint(getpid())",
    "def f(os): return f'{os.getpid()}'",
    "class os:\n    @staticmethod\n    def getpid(): return 1\nprint(os.getpid())",
    "from mylib import getpid\nprint(getpid())",
    "id = 3\nprint(id)\ndef f(id): return f'{id(3)}'",
    "print(hash('text'))",
    "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\nprint(A(1))",
    "class A(Base): pass\nprint(A())",
    "class A:\n    def __repr__(self): return 'A'\nprint(A())",
    "class A:\n    __slots__ = ()\n    def __str__(self): return 'A'\nprint(f'{A()}')",
    "def f(): return 1\nprint(f())",
    # Orders that nobody hears of.
    "for x in {'a', 'b'}:\n    total += len(x)",
    "print(sorted({'a', 'b'}))",
    "print({1, 2, 3})",
    "class A: pass\ns = {A(), A()}\nprint(len(s))",
    "class A:\n    def __hash__(self): return 1\n    def __eq__(self, o): return True\nfor x in {A()}: pass",
    "import enum\nclass E(enum.Enum):\n    A = 1\nfor x in {E.A}: pass",
    "import os\nfor n in sorted(os.listdir('.')): use(n)",
    "import os\nnames = os.listdir('.')\nnames.sort()",
    "import os\nnames = [n for n in os.listdir('.') if n]\nnames.sort()",
    "import os\nif 'a' in os.listdir('.'): pass",
    "import os\nn = len(os.listdir('.'))",
    "from pathlib import Path\nn = sum(1 for p in Path('.').rglob('*.py'))",
    "from pathlib import Path\nx = sorted(p for p in Path('.').iterdir() if p.is_file())",
    "import os\nnames = {n for n in os.listdir('.')}",
    # Clocks, chance and the machine, where it does not matter.
    "import numpy as np\nx = np.datetime64('2020-01-01')",
    "db.execute('select * from now_playing where id = ?', (1,))",
    "db.execute('select 1 -- random()')",
    "tool.execute('tell me about random()')",
    "import os\nif os.path.getmtime('a') > last: pass",
    "import asyncio\nasync def f():\n    deadline = asyncio.get_running_loop().time() + 5",
    "import torch\ntorch.manual_seed(1)\nx = torch.randn(3)",
    "import torch\nx = torch.rand(3, generator=g)",
    "import torch\nx = torch.zeros(3)",
    "import _random\nr = _random.Random(7)",
    "import polars as pl\nx = pl.Series(v).sample(5, seed=1)",
    "x = open('data.txt').read()",
    "open('/tmp/log', 'w').write('x')",
    "import os\nif os.uname().sysname == 'Linux': pass",
    "s = {'a', 'b'}\nkept.update(x for x in s if x)",
    "import platform\nif platform.system() == 'Windows': pass",
    "import os\nworkers = os.cpu_count() or 1",
    "import subprocess\nsubprocess.run(['git', 'status'])",
    "import subprocess\nsubprocess.run(['./date.sh'])",
    # Concurrent work that keeps its order.
    "from concurrent.futures import as_completed\nfor f in as_completed(fs):\n    out[fs[f]] = f.result()",
    "import asyncio\nasync def f(ts):\n    return await asyncio.gather(*ts)",
    "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as p:\n    x = list(p.map(f, xs))",
    "import threading\nout = []\ndef work():\n    out.append(1)\nthreading.Thread(target=work).start()",
    "import threading\ndef work():\n    out = []\n    out.append(1)\n"
    "for _ in range(2): threading.Thread(target=work).start()",
    "out = []\ndef work(n):\n    out.append(n)\nfor n in range(3): work(n)",
    "import random, threading\ndef work():\n    rng = random.Random(7)\n    return rng.random()\n"
    "for _ in range(2): threading.Thread(target=work).start()",
    "import random, threading\ndef work():\n    return random.random()\n"
    "for _ in range(2): threading.Thread(target=work).start()",
    "import threading\ndef work(out):\n    out.append(1)\n"
    "def main():\n    for box in boxes:\n        threading.Thread(target=work, args=(box,)).start()",
    "import asyncio\nout = []\nasync def ask(n):\n    out.append(n)\n"
    "async def main():\n    await asyncio.gather(*(ask(n) for n in range(3)))",
    "import polars as pl\nx = pl.DataFrame(d).unique(maintain_order=True)",
    "import polars as pl\nx = pl.DataFrame(d).group_by('a').len().sort('a')",
    "import pandas as pd\nx = pd.DataFrame(d).groupby('a').size()\ny = pd.Series(d).unique()",
    # Clients that come through the wire.
    "import httpx\nc = httpx.Client()",
    "import httpx\nc = httpx.Client(trust_env=True, verify=False)",
    "import httpx\nc = httpx.Client(transport=httpx.MockTransport(answer))",
    "import httpx, os\nc = httpx.Client(proxy=os.environ['HTTPS_PROXY'])",
    "import httpx\nc = httpx.Client(transport=None)",
    "import urllib3\np = urllib3.ProxyManager(url)",
    "import http.client\nc = http.client.HTTPConnection('127.0.0.1', 80)",
    "import os\nos.environ['MODE'] = '1'\nx = os.environ.get('NO_PROXY')",
    "import socket\ns = socket.create_connection(('127.0.0.1', 80))",
    "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('/run/x.sock')",
    "import ssl\nc = ssl.create_default_context()",
    "import requests\nrequests.get(url, verify=False)",
    "import subprocess, sys\nsubprocess.run([sys.executable, 'tool.py', '-I'])",
    "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'tool', '-E'])",
    "from .gevent import x",
]


def places(source: str) -> list[tuple[str, int]]:
    return [(finding.rule.code, finding.line) for finding in scan(source.encode(), "agent.py")]


@pytest.mark.parametrize(("code", "source"), FOUND, ids=[f"{code}-{n}" for n, (code, _) in enumerate(FOUND)])
def test_what_a_rule_is_about_is_found_on_its_line(code: str, source: str) -> None:
    marked = [number for number, line in enumerate(source.split("\n"), 1) if line.endswith("#!")]
    assert marked
    assert [line for found, line in places(source) if found == code] == marked


@pytest.mark.parametrize("source", CLEAN)
def test_a_near_miss_is_left_alone(source: str) -> None:
    assert places(source) == []


def test_every_rule_has_an_example() -> None:
    assert {code for code, _ in FOUND} | {"TP001"} == set(RULES)
