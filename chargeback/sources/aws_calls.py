"""Calls to AWS through boto3: every page or nothing, and refusals in one line.

boto3 signs, retries and finds credentials (environment, profile, instance or pod identity); nothing of them is said. A
refusal names the call and the error's code, never the text of the answer: some texts repeat what was signed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
from botocore.parsers import ResponseParserError

from fleet.errors import SourceError, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_PAGES: Final = 10_000
CONNECT_SECONDS: Final = 10
READ_SECONDS: Final = 60
_DENIED: Final = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")
_CODE_LENGTH: Final = 80


class Calls:
    """The services of one account in one region. `said` is told each call before it is made."""

    def __init__(self, region: str, endpoint_url: str, said: Callable[[str], None]) -> None:
        """Prepare; nothing is called yet."""
        self.region, self._endpoint_url, self._said = region, endpoint_url or None, said
        self._clients: dict[str, Any] = {}

    def all(self, service: str, operation: str, key: str, **asked: Any) -> list[Any]:
        """Every item that the pages of an operation list under `key`. SourceError when one of them is refused."""
        # Services whose own names begin small write this one so too.
        token = "nextToken" if key[0].islower() else "NextToken"
        found: list[Any] = []
        seen: set[str] = set()
        for _ in range(MOST_PAGES):
            page = self.one(service, operation, **asked)
            if key not in page:
                # boto3 makes an empty page of what is no answer at all, such as the page of a proxy.
                raise SourceError(f"{self._where(service, operation)}: the answer has no {key}")
            found += page[key]
            following = page.get(token)
            if not following:
                return found
            if following in seen:
                break
            seen.add(following)
            asked[token] = following
        raise SourceError(f"{self._where(service, operation)}: its pages have no end")

    def one(self, service: str, operation: str, **asked: Any) -> dict[str, Any]:
        """The answer to one call. SourceError when it is refused, or none comes."""
        where = self._where(service, operation)
        self._said(where)
        try:
            answer: dict[str, Any] = getattr(self._client(service), operation)(**asked)
        except ClientError as error:
            raise SourceError(f"{where}: {_refusal(error, service, operation)}") from None
        except NoCredentialsError:
            raise SourceError(f"{where}: no AWS credentials (environment, profile or instance role)") from None
        except (BotoCoreError, ResponseParserError) as error:
            raise SourceError(f"{where}: {type(error).__name__}") from None
        return answer

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            config = Config(retries={"mode": "standard"}, connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS)
            self._clients[service] = boto3.client(
                service, region_name=self.region, endpoint_url=self._endpoint_url, config=config
            )
        return self._clients[service]

    def _where(self, service: str, operation: str) -> str:
        return f"{_action(service, operation)} in {self.region}"


def _refusal(error: ClientError, service: str, operation: str) -> str:
    code = one_line(str(error.response.get("Error", {}).get("Code", "")))[:_CODE_LENGTH] or "refused"
    if code in _DENIED:
        return f"{code}: the permission {_action(service, operation)} is missing"
    return f"status {code}" if code.isdigit() else code


def _action(service: str, operation: str) -> str:
    """A call as AWS' permissions name it: `ec2:DescribeInstances`."""
    return f"{service}:{''.join(word.capitalize() for word in operation.split('_'))}"
