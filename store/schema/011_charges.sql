-- Purpose: charges of every provider: deliveries of several files, their lineage, what was found wrong with them; and what
--   charges are made of where no export has them: commitments, owned hardware, exchange rates.
-- Grain: one row of an input file; findings: one for each identity and row shown
-- Reads: nothing

ALTER TABLE lake.charge ADD COLUMN part VARCHAR;           -- file of a delivery of several; NULL = the source itself
ALTER TABLE lake.charge ADD COLUMN part_row BIGINT;        -- row in that file; source_row counts through all of them
ALTER TABLE lake.charge ADD COLUMN host_provider VARCHAR;
ALTER TABLE lake.charge ADD COLUMN sub_account_name VARCHAR;
ALTER TABLE lake.charge ADD COLUMN invoice_detail_id VARCHAR;
ALTER TABLE lake.charge ADD COLUMN availability_zone VARCHAR;
ALTER TABLE lake.charge ADD COLUMN sku_meter VARCHAR;
ALTER TABLE lake.charge ADD COLUMN list_unit_price DECIMAL(38, 12);
ALTER TABLE lake.charge ADD COLUMN contracted_unit_price DECIMAL(38, 12);
ALTER TABLE lake.charge ADD COLUMN pricing_currency VARCHAR;
ALTER TABLE lake.charge ADD COLUMN commitment_discount_type VARCHAR;
ALTER TABLE lake.charge ADD COLUMN commitment_discount_category VARCHAR;
ALTER TABLE lake.charge ADD COLUMN commitment_discount_quantity DECIMAL(38, 12);
ALTER TABLE lake.charge ADD COLUMN commitment_discount_unit VARCHAR;
ALTER TABLE lake.charge ADD COLUMN allocated_resource_id VARCHAR;
ALTER TABLE lake.charge ADD COLUMN allocated_tags VARCHAR;
ALTER TABLE lake.charge ADD COLUMN x_instance_type VARCHAR;
ALTER TABLE lake.charge ADD COLUMN x_gpu_model VARCHAR;
ALTER TABLE lake.charge ADD COLUMN x_gpu_count INTEGER;
ALTER TABLE lake.charge ADD COLUMN x_origin VARCHAR;       -- export, capacity_block, neocloud, onprem
ALTER TABLE lake.charge ADD COLUMN x_is_split_row BOOLEAN; -- repeats money that another row has: in no sum
ALTER TABLE lake.charge ADD COLUMN x_line_type VARCHAR;    -- what the provider itself calls the line (AWS: line item type)
ALTER TABLE lake.charge ADD COLUMN allocated_method_details VARCHAR;
ALTER TABLE lake.charge ADD COLUMN allocated_resource_name VARCHAR;
-- What was mended while reading stays visible beside what is used instead; NULL = nothing was mended.
ALTER TABLE lake.charge ADD COLUMN x_stated_effective_cost DECIMAL(38, 12);  -- effective_cost is billed_cost instead
ALTER TABLE lake.charge ADD COLUMN x_stated_tags VARCHAR;  -- tags has their keys without blanks around them
ALTER TABLE lake.charge ADD COLUMN x_zone_assumed BOOLEAN; -- its times carried no zone and were read as UTC
-- What an export says beside FOCUS.
ALTER TABLE lake.charge ADD COLUMN x_fx_rate DECIMAL(38, 12); -- the provider's own: units of the billing currency for one USD
ALTER TABLE lake.charge ADD COLUMN x_credits VARCHAR;      -- JSON: type and amount of the credits of the export's row
ALTER TABLE lake.charge ADD COLUMN x_cost_center VARCHAR; -- of the subscription, as the provider (Azure) writes it
-- Ids that are spelt in several ways are one; what the file said, where that differs.
ALTER TABLE lake.charge ADD COLUMN x_stated_resource_id VARCHAR;
ALTER TABLE lake.charge ADD COLUMN x_stated_commitment_id VARCHAR;

ALTER TABLE lake.snapshot ADD COLUMN provider VARCHAR;
ALTER TABLE lake.snapshot ADD COLUMN export_name VARCHAR;
ALTER TABLE lake.snapshot ADD COLUMN period VARCHAR;
ALTER TABLE lake.snapshot ADD COLUMN execution_id VARCHAR;
ALTER TABLE lake.snapshot ADD COLUMN status VARCHAR;       -- accepted (or NULL), quarantined: never current

CREATE TABLE lake.charge_finding (  -- what an identity of charges found in a snapshot: the first rows, and how many there are
    snapshot_id VARCHAR, source VARCHAR, identity VARCHAR, severity VARCHAR, row_count BIGINT,
    part VARCHAR, source_row BIGINT, column_name VARCHAR, value VARCHAR, message VARCHAR, found_at TIMESTAMPTZ
);

CREATE TABLE lake.commitment (
    snapshot_id VARCHAR, source_row BIGINT,
    commitment_id VARCHAR, kind VARCHAR, term_start TIMESTAMPTZ, term_end TIMESTAMPTZ,
    upfront_amount DECIMAL(38, 12), recurring_hourly_amount DECIMAL(38, 12),
    quantity DECIMAL(18, 6), unit VARCHAR, pool VARCHAR, currency VARCHAR, issuer VARCHAR, provider VARCHAR,
    region VARCHAR, instance_type VARCHAR, status VARCHAR
);

CREATE TABLE lake.asset (
    snapshot_id VARCHAR, source_row BIGINT,
    cluster VARCHAR, node VARCHAR, capex_amount DECIMAL(38, 12), salvage_amount DECIMAL(38, 12), months INTEGER,
    in_service_from TIMESTAMPTZ, in_service_to TIMESTAMPTZ, power_price_kwh DECIMAL(38, 12), pue DECIMAL(18, 6),
    rated_kw DECIMAL(18, 6), base_kw DECIMAL(18, 6),
    colo_monthly_amount DECIMAL(38, 12), support_monthly_amount DECIMAL(38, 12), staff_monthly_amount DECIMAL(38, 12),
    currency VARCHAR
);

CREATE TABLE lake.exchange_rate (  -- one unit of `currency` is `rate` units of `reporting_currency` in the books of a period
    snapshot_id VARCHAR, source_row BIGINT,
    period VARCHAR, currency VARCHAR, reporting_currency VARCHAR, rate DECIMAL(38, 12), rate_source VARCHAR, as_of TIMESTAMPTZ
);

-- The bill of a period, published with its build.
ALTER TABLE lake.bridge ADD COLUMN invoice_tax DECIMAL(38, 12);  -- tax that only the invoice states, within statement_total

CREATE TABLE lake.invoice_total (  -- issuer, currency, invoice: what it asks beside the charges that are on it
    period VARCHAR, issuer VARCHAR, currency VARCHAR, invoice_id VARCHAR, invoice_count BIGINT, charge_count BIGINT,
    billed_total DECIMAL(38, 12), tax_total DECIMAL(38, 12), absent_tax DECIMAL(38, 12), invoice_total DECIMAL(38, 12),
    residual DECIMAL(38, 12), tolerance DECIMAL(38, 12), status VARCHAR
);

CREATE TABLE lake.prepaid (        -- issuer, currency, commitment: paid and not yet consumed
    period VARCHAR, issuer VARCHAR, currency VARCHAR, commitment VARCHAR, kind VARCHAR, term_start TIMESTAMPTZ,
    term_end TIMESTAMPTZ, opening DECIMAL(38, 12), purchases DECIMAL(38, 12), amortised_used DECIMAL(38, 12),
    amortised_unused DECIMAL(38, 12), amortised_unknown DECIMAL(38, 12), closing DECIMAL(38, 12), status VARCHAR
);

CREATE TABLE lake.commitment_charge (  -- what the period uses up of a commitment that no export amortises
    period VARCHAR, snapshot_id VARCHAR, source_row BIGINT, commitment_snapshot_id VARCHAR, commitment_row BIGINT,
    commitment_id VARCHAR, invoice_issuer VARCHAR, commitment_discount_id VARCHAR, billing_currency VARCHAR,
    billed_cost DECIMAL(38, 12), effective_cost DECIMAL(38, 12), charge_period_start TIMESTAMPTZ, charge_period_end TIMESTAMPTZ
);

CREATE TABLE lake.asset_charge (   -- what owned hardware cost: one row for each part of its cost
    period VARCHAR, snapshot_id VARCHAR, source_row BIGINT, asset_snapshot_id VARCHAR, asset_row BIGINT, charge_part VARCHAR,
    cluster VARCHAR, node VARCHAR, invoice_issuer VARCHAR, resource_id VARCHAR, charge_description VARCHAR,
    billing_currency VARCHAR, billed_cost DECIMAL(38, 12), effective_cost DECIMAL(38, 12),
    charge_period_start TIMESTAMPTZ, charge_period_end TIMESTAMPTZ, invoice_id VARCHAR
);

CREATE TABLE lake.reporting_line ( -- statement lines of other currencies in the reporting currency
    period VARCHAR, version INTEGER, team VARCHAR, cost_centre VARCHAR, gl_account VARCHAR, category VARCHAR, pool VARCHAR,
    gpu_model VARCHAR, policy VARCHAR, gpu_microseconds BIGINT, booked_amount DECIMAL(38, 12), booked_currency VARCHAR,
    rate DECIMAL(38, 12), rate_source VARCHAR, amount DECIMAL(38, 12), currency VARCHAR
);

CREATE TABLE lake.list_price (  -- what a provider asks of everybody; dearer or cheaper from `tier_start` units of usage on
    snapshot_id VARCHAR, source_row BIGINT,
    provider VARCHAR, sku_id VARCHAR, description VARCHAR, region VARCHAR, instance_type VARCHAR, usage_unit VARCHAR,
    tier_start DECIMAL(38, 12), unit_price DECIMAL(38, 12), currency VARCHAR, as_of TIMESTAMPTZ,
    usage_type VARCHAR, base_unit VARCHAR, base_unit_factor DECIMAL(38, 12), display_quantity DECIMAL(38, 12)
);

CREATE TABLE lake.reservation_use (  -- an instance ran in a capacity reservation at least from used_from to seen_at
    snapshot_id VARCHAR, source_row BIGINT,
    resource_id VARCHAR, capacity_reservation_id VARCHAR, used_from TIMESTAMPTZ, seen_at TIMESTAMPTZ
);
