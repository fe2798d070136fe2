"""Token ledgers: what gateways and engines write down about each request, summed by server, tenant, model and hour."""
