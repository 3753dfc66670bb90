"""What the dashboard of Hermes shows of memoryd: the settings, as data.  The host lets this file import that one module only."""

from plugins.memory.config_schema import ProviderConfigSchema, ProviderField, ProviderFieldOption


def _options(*values: str) -> tuple[ProviderFieldOption, ...]:
    return tuple(ProviderFieldOption(value=value, label=value) for value in values)


CONFIG_SCHEMA = ProviderConfigSchema(
    name="memoryd",
    label="memoryd",
    storage="flat_json",
    fields=(
        ProviderField(
            key="backend",
            label="Backend",
            kind="select",
            default="local",
            description="where memory is kept and recalled first; local is always behind it; null turns capture off",
            options=_options("local", "honcho", "auto", "null"),
            inline=True,
        ),
        ProviderField(
            key="honcho_url",
            label="Honcho address",
            description="address of the Honcho server, such as https://honcho.example.com",
            inline=True,
        ),
        ProviderField(
            key="honcho_api_key",
            label="Honcho API key",
            kind="secret",
            description="key of the Honcho server; kept in the profile's .env",
            env_key="HONCHO_API_KEY",
            inline=True,
        ),
        ProviderField(
            key="store",
            label="Store",
            description="a memoryd home to share with other hosts; empty: memoryd-store in the Hermes home",
        ),
        ProviderField(
            key="daemon",
            label="Daemon",
            kind="select",
            default="never",
            description="auto: through memoryd's daemon while it serves the store, whose configuration counts then; never: in this process",
            options=_options("never", "auto"),
        ),
        ProviderField(
            key="user",
            label="User",
            default="default",
            description="whose memory it is where Hermes names no user",
        ),
        ProviderField(
            key="private",
            label="Private",
            kind="bool",
            default="false",
            description="true: nothing is recorded, and no checkpoint is archived",
        ),
        ProviderField(
            key="automation",
            label="Automation",
            kind="select",
            default="apart",
            description="turns of cron jobs, subagents and flushes: kept apart from the user's facts, the same as the user's, or off",
            options=_options("apart", "same", "off"),
        ),
        ProviderField(
            key="auto_recall",
            label="Automatic recall",
            kind="bool",
            default="true",
            description="true: what fits is recalled before every turn",
        ),
        ProviderField(
            key="recall_chars",
            label="Recall size",
            kind="number",
            default="4000",
            description="characters recalled before a turn, at most",
        ),
        ProviderField(
            key="tools",
            label="Tools",
            kind="bool",
            default="true",
            description="true: the model gets memoryd's tools",
        ),
        ProviderField(
            key="gate_fallback_dir",
            label="Second archive",
            description="a second place for checkpoints, used when the store's own fails",
        ),
    ),
)
