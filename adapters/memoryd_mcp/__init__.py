"""The MCP server: memory as tools and resources for any MCP client."""
