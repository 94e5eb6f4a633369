"""Which addresses a user may send us to. An address is judged where it is connected to, as a number, after its name
was resolved: what a URL looks like before that proves nothing (decimal, octal, mapped and rebinding names)."""

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import SplitResult, urlsplit

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_TRANSLATED = ipaddress.IPv6Network("::ffff:0:0:0/96")
# What `is_global` lets through and no public service lives at: shared address space, benchmarks, 6to4 relays,
# protocol assignments.
_ALSO_REFUSED: tuple[Network, ...] = tuple(
    ipaddress.ip_network(one)
    for one in ("100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "64:ff9b:1::/48", "fec0::/10")
)
# Ports at which other protocols listen that take a line of HTTP for one of theirs.
_REFUSED_PORTS = frozenset({
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
    111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
    540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3306, 3389, 3659, 4045, 4190,
    5060, 5061, 5432, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 9200, 10080, 11211, 27017,
})  # fmt: skip
# A host of letters, digits, dashes, dots and underscores, or an IPv6 address.
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?\.?|[0-9a-f:.]+", re.IGNORECASE)
MOST_CHARACTERS = 2000


class UnsafeUrlError(ValueError):
    """A URL or address that we do not go to. The sentence is for its giver and tells nothing of what is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Who may be called although the address is private: hosts by name, networks. What is allowed so may have any port
    and plain http, a host by name also any address; all others take https only, unless `allow_http`."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()
    allow_http: bool = False

    @classmethod
    def of(cls, words: Iterable[str], *, allow_http: bool = False) -> "Policy":
        """From host names, addresses and CIDR networks. Raises ValueError naming the word that is none of these."""
        hosts, networks = set(), []
        for word in words:
            text = word.strip().lower().rstrip(".")
            try:
                networks.append(ipaddress.ip_network(text.strip("[]"), strict=False))
            except ValueError:
                if "/" in text or ":" in text or not _HOST.fullmatch(text):
                    raise ValueError(f"{word!r} is neither a host's name nor a network such as 10.0.0.0/8") from None
                hosts.add(text)
        return cls(hosts=frozenset(hosts), networks=tuple(networks), allow_http=allow_http)

    def knows(self, host: str) -> bool:
        return host.lower().rstrip(".") in self.hosts

    def is_inside(self, address: str | Address) -> bool:
        """Whether it lies in a network that was allowed."""
        number = ipaddress.ip_address(address) if isinstance(address, str) else address
        judged = embedded(number)
        return any(judged in network or number in network for network in self.networks)

    def allows(self, address: Address) -> bool:
        """Whether the number may be connected to."""
        if self.is_inside(address):
            return True
        judged = embedded(address)
        return (
            judged.is_global
            and not judged.is_multicast
            and not judged.is_reserved
            and not any(judged in network for network in _ALSO_REFUSED)
        )


def embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for (mapped, compatible, NAT64, 6to4, Teredo), else itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or address in _TRANSLATED or 1 < int(address) < 2**32:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def check(url: str, policy: Policy) -> SplitResult:
    """What a URL's form already tells. For a first answer to whoever gives one; the connection is checked again."""
    if len(url) > MOST_CHARACTERS or not url.isascii() or any(ord(one) <= 32 or ord(one) == 127 for one in url):
        raise UnsafeUrlError("The address holds characters that no address can have, or is too long.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise UnsafeUrlError("This is no address.") from None
    if "\\" in url or parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise UnsafeUrlError("The address holds a user, a password or a backslash: leave them out.")
    if not host or not _HOST.fullmatch(host):
        raise UnsafeUrlError("The address names no host.")
    allowed = policy.knows(host)
    numeric = _number(host)
    if numeric is not None:
        if not allowed:
            check_address(numeric, policy)
        allowed = allowed or policy.is_inside(numeric)
    elif not allowed and ("." not in host.rstrip(".") or _is_local_name(host)):
        raise UnsafeUrlError("The address names a host of the inside, which is not called.")
    if parts.scheme != "https" and not (parts.scheme == "http" and (allowed or policy.allow_http)):
        raise UnsafeUrlError("The address must begin with https://.")
    check_port(port if port is not None else {"https": 443, "http": 80}[parts.scheme], allowed=allowed)
    return parts


def check_port(port: int, *, allowed: bool) -> None:
    if not allowed and (port in _REFUSED_PORTS or not 0 < port < 65536):
        raise UnsafeUrlError(f"Port {port} is not called.")


def check_address(address: Address, policy: Policy) -> None:
    if not policy.allows(address):
        raise UnsafeUrlError("The address leads to a private or special network, which is not called.")


def resolve(host: str, port: int, policy: Policy) -> list[str]:
    """The addresses of a host, each of them allowed: one that is not refuses the host, so that a name cannot offer a
    good one beside a bad one. Raises UnsafeUrlError, and OSError where the name is not known."""
    found = [
        str(info[4][0]).partition("%")[0]
        for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    ]
    if not policy.knows(host):
        for one in found:
            check_address(ipaddress.ip_address(one), policy)
    return list(dict.fromkeys(found))


def _is_local_name(host: str) -> bool:
    name = host.lower().rstrip(".")
    return name.endswith((".localhost", ".local", ".internal", ".localdomain", ".home.arpa", ".lan", ".intranet"))


def _number(host: str) -> Address | None:
    """The address that the system's resolver would read a host of digits as: `2130706433`, `0x7f.1`, `0177.0.0.1`."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host.rstrip(".")))
    except (OSError, UnicodeEncodeError):
        return None
