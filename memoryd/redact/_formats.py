"""Keys that are known by their form alone.  The detector knows hundreds more, and leaves out examples and weak ones; these stay in."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from memoryd.core import Span

__all__ = ["FORMATS", "Format", "find_formats"]


@attrs.frozen(slots=True)
class Format:
    """A kind of key: a text that holds none of ``marks`` is not searched; group 1, or else the whole match, is the secret."""

    label: str
    marks: tuple[str, ...]
    pattern: re.Pattern[str]


def _format(label: str, mark: str, pattern: str) -> Format:
    """``mark`` may name several, separated by spaces.  A key begins where no letter or digit stands before it."""
    return Format(label, tuple(mark.split()), re.compile(r"(?<![A-Za-z0-9])" + pattern))


_B64 = r"[A-Za-z0-9_-]"
_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_HEAD = r"(?:Proc-Type|DEK-Info|Version|Comment)"

FORMATS: tuple[Format, ...] = (
    _format("aws-access-key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _format("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,255}"),
    _format("github-pat", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}"),
    _format("gitlab-token", "gl", r"gl(?:pat|dt|rt|sa|ptt|cbt|ft|soat)-[A-Za-z0-9_.-]{20,255}"),
    _format("anthropic-key", "sk-ant-", rf"sk-ant-{_B64}{{20,255}}"),
    _format("openrouter-key", "sk-or-", rf"sk-or-{_B64}{{20,255}}"),
    _format("openai-key", "sk-", rf"sk-(?:proj-|svcacct-|admin-|None-)?{_B64}{{20,255}}"),
    _format("slack-token", "xox", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,255}"),
    _format("slack-app-token", "xapp-", r"xapp-[0-9]-[A-Za-z0-9-]{10,255}"),
    _format("slack-webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/+_-]{20,255})"),
    _format("discord-webhook", "/api/webhooks/", r"/api/webhooks/([0-9]{15,21}/[A-Za-z0-9_-]{40,100})"),
    _format("discord-token", ".", r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}"),
    _format("telegram-token", ":", r"[0-9]{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _format("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ whsec_", r"(?:[srp]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,255}"),
    _format("square-token", "sq0atp- sq0csp- EAAA", r"(?:sq0(?:atp|csp)-[A-Za-z0-9_-]{22,43}|EAAA[A-Za-z0-9_-]{60})"),
    _format("google-api-key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    _format("google-oauth-token", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,1024}"),
    _format("google-client-secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,64}"),
    _format("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    _format("mailgun-key", "key-", r"key-[0-9a-f]{32}"),
    _format("mailchimp-key", "-us", r"[0-9a-f]{32}-us[0-9]{1,2}"),
    _format("brevo-key", "xkeysib-", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    _format("twilio-key", "SK AC", r"(?:SK|AC)[0-9a-f]{32}(?![A-Za-z0-9])"),
    _format("npm-token", "npm_", r"npm_[A-Za-z0-9]{30,64}"),
    _format("pypi-token", "pypi-", r"pypi-[A-Za-z0-9_-]{32,512}"),
    _format("rubygems-key", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    _format("crates-token", "cio", r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    _format("docker-token", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,64}"),
    _format("huggingface-token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{30,64}"),
    _format("replicate-token", "r8_", r"r8_[A-Za-z0-9]{30,64}"),
    _format("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{40,64}"),
    _format("xai-key", "xai-", r"xai-[A-Za-z0-9]{60,100}"),
    _format("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{40,64}"),
    _format("honcho-key", "hch-", r"hch-[A-Za-z0-9_.-]{16,255}"),
    _format("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    _format("shopify-token", "shpat_ shpss_ shpca_ shppa_", r"shp(?:at|ss|ca|pa)_[0-9A-Fa-f]{32}"),
    _format("linear-key", "lin_api_ lin_oauth_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    _format("notion-token", "ntn_ secret_", r"(?:ntn|secret)_[A-Za-z0-9]{40,64}"),
    _format("figma-token", "figd_ figo_", r"fig[do]_[A-Za-z0-9_-]{38,64}"),
    _format("atlassian-token", "ATATT ATCTT", r"AT[AC]TT3[A-Za-z0-9_=-]{40,400}"),
    _format("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,80}"),
    _format("vault-token", "hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_-]{24,300}"),
    _format("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70}"),
    _format("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?:-[0-9])?"),
    _format("grafana-token", "glsa_ glc_", r"(?:glsa|glc)_[A-Za-z0-9+/=_-]{32,400}"),
    _format("newrelic-key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _format("sentry-token", "sntrys_ sntryu_", r"sntry[su]_[A-Za-z0-9+/=_-]{40,400}"),
    _format("postman-key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _format("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}"),
    _format("supabase-key", "sbp_ sb_secret_", r"sb(?:p|_secret)_[A-Za-z0-9_-]{30,64}"),
    _format("age-key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    _format("onepassword-token", "ops_ey", r"ops_ey[A-Za-z0-9+/=_-]{40,2000}"),
    _format("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{4,8192}\.[A-Za-z0-9_-]{0,2048}"),
    _format("private-key", "PRIVATE KEY", rf"{_BEGIN}[\s\S]{{0,20000}}?-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----"),
    # cut off before its end: what looks like its lines
    _format("private-key", "PRIVATE KEY", rf"{_BEGIN}(?:[A-Za-z0-9+/=]{{16,}}|\\[nr]|[>\s\"'+,]|{_HEAD}:[^\n]{{0,80}})*"),
)  # fmt: skip


def find_formats(text: str) -> Iterator[Span]:
    """Every key in ``text`` that is known by its form."""
    for kind in FORMATS:
        for mark in kind.marks:
            if mark in text:
                group = min(1, kind.pattern.groups)
                yield from (Span(*found.span(group), kind.label) for found in kind.pattern.finditer(text))
                break
