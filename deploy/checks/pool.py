"""Two replicas and a proxy in front of them, as this folder's configurations describe them."""
import asyncio
import os
import signal
import socket
import subprocess
import time
import urllib.request

import client


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Pool:
    def __init__(self, proxy, launcher, hearth, folder, here):
        self.proxy, self.launcher, self.hearth = proxy, launcher, hearth
        self.folder, self.here = folder, here
        self.is_haproxy = os.path.basename(proxy) == "haproxy"
        self.ports = [free_port(), free_port()]
        self.proxy_port, self.numbers_port = free_port(), free_port()
        # What X-Replica says.
        self.names = (["replica-1", "replica-2"] if self.is_haproxy else
                      [f"127.0.0.1:{port}" for port in self.ports])
        self.replicas = [None, None]
        self.proxy_process = None

    def __enter__(self):
        for index in range(2):
            self.start(index)
        self.use_sessions()
        return self

    def __exit__(self, *_):
        for process in [self.proxy_process, *self.replicas]:
            if process is not None and process.poll() is None:
                process.terminate() if process is self.proxy_process else process.kill()
                process.wait()

    def start(self, index):
        log = open(os.path.join(self.folder, f"replica-{index}.log"), "ab")
        model = os.path.join(self.here, "..", "models", "default", "hearth-tiny-Q8_0.gguf")
        # Blocks for about two thirds of the conversations that the test has.
        self.replicas[index] = subprocess.Popen(
            [self.launcher, self.hearth, "serve", "-m", model, "--port", str(self.ports[index]),
             "--kv-blocks", "430", "--drain-time", "60"], stderr=log, stdin=subprocess.DEVNULL)

    def kill(self, index, number):
        self.replicas[index].send_signal(number)
        if number == signal.SIGKILL:
            self.replicas[index].wait()

    def wait(self, index):
        try:
            return self.replicas[index].wait(90)
        except subprocess.TimeoutExpired:
            return None

    def use_sessions(self):
        self._run_proxy(lambda text: text)

    def use_round_robin(self):
        if self.is_haproxy:
            self._run_proxy(lambda text: text.replace("balance hdr(X-Session-Id)",
                                                      "balance roundrobin"))
        else:
            self._run_proxy(lambda text: text.replace("hash $session consistent;", ""))

    def _run_proxy(self, change):
        if self.proxy_process is not None:
            self.proxy_process.terminate()
            self.proxy_process.wait()
        name = "haproxy.cfg" if self.is_haproxy else "nginx.conf"
        with open(os.path.join(self.here, name), encoding="utf-8") as file:
            text = change(file.read())
        for index, port in enumerate(self.ports):
            text = text.replace(f"replica-{index + 1}:8080", f"127.0.0.1:{port}")
        text = text.replace("bind :8000", f"bind 127.0.0.1:{self.proxy_port}")
        text = text.replace("bind :8404", f"bind 127.0.0.1:{self.numbers_port}")
        text = text.replace("listen 8000;", f"listen 127.0.0.1:{self.proxy_port};")
        text = text.replace("/tmp/hearth-nginx.pid", os.path.join(self.folder, "nginx.pid"))
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        command = ([self.proxy, "-db", "-f", path] if self.is_haproxy else
                   [self.proxy, "-p", self.folder, "-c", path, "-g", "daemon off;"])
        log = open(os.path.join(self.folder, "proxy.log"), "ab")
        self.proxy_process = subprocess.Popen(command, stdout=log, stderr=log,
                                              stdin=subprocess.DEVNULL)
        time.sleep(1.5)  # until it has checked its replicas

    async def both_in_use(self):
        """Waits until requests reach both replicas."""
        seen = set()
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            results = await asyncio.gather(*(client.stream(
                self.proxy_port, {"prompt": "Once", "max_tokens": 1, "stream": True},
                session=f"probe-{i}-{deadline}") for i in range(16)))
            seen = {result.replica for result in results if result.ok}
            if seen >= set(self.names):
                if self.is_haproxy:
                    await asyncio.sleep(5.5)  # slowstart: the shares of sessions still change
                return True
            await asyncio.sleep(0.5)
        return False

    def metric(self, name):
        """The sum over both replicas."""
        total = 0
        for port in self.ports:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
                for line in reply.read().decode().splitlines():
                    if line.startswith(name + " "):
                        total += float(line.split()[1])
        return total

    def logs(self):
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                    text += f"--- {name}\n" + "".join(file.readlines()[-15:])
        return text
