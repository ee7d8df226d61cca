"""Jupyter Server's classes for kernels behind a gateway, with what their users add to them."""

import websocket
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.gateway.managers import GatewayKernelClient, GatewayKernelManager


class Client(GatewayKernelClient):
    """Its WebSocket carries no token of its own accord (wire-contract 1.14, item 4)."""

    async def start_channels(self, *args, **kwargs):
        plain = websocket.create_connection
        token = GatewayClient.instance().auth_token
        websocket.create_connection = lambda url, **more: plain(
            url, header={"Authorization": f"token {token}"}, **more)
        try:
            await super().start_channels(*args, **kwargs)
        finally:
            websocket.create_connection = plain


class Manager(GatewayKernelManager):
    client_factory = Client
    client_class = f"{__name__}.Client"

    async def _async_is_alive(self):
        # jupyter_client asks this name, which its own manager answers from a local process.
        return await self.is_alive()


def point_at(url, token):
    GatewayClient.clear_instance()
    GatewayClient.instance(url=url, auth_token=token)
