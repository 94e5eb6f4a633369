"""pgvector, unaccent, and a folding text-search configuration for each language that ships with PostgreSQL.

`ts_<language>` is the language's own configuration with accents folded before its stemmer, so that the column and
the query always agree (`unaccent()` itself is not immutable and cannot stand in an index).
"""

from django.contrib.postgres.operations import CreateExtension
from django.db import migrations

CREATE = """
DO $$
DECLARE config record; filters text;
BEGIN
  FOR config IN
    SELECT c.cfgname AS name, d.dictname AS dict
    FROM pg_ts_config c
    JOIN pg_namespace n ON n.oid = c.cfgnamespace AND n.nspname = 'pg_catalog'
    JOIN pg_ts_config_map m ON m.mapcfg = c.oid
    JOIN pg_ts_dict d ON d.oid = m.mapdict
    WHERE m.maptokentype = 2 AND NOT EXISTS (
      SELECT 1 FROM pg_ts_config o WHERE o.cfgname = 'ts_' || c.cfgname AND o.cfgnamespace = current_schema()::regnamespace
    )
  LOOP
    EXECUTE format('CREATE TEXT SEARCH CONFIGURATION %I (COPY = pg_catalog.%I)', 'ts_' || config.name, config.name);
    EXECUTE format(
      'ALTER TEXT SEARCH CONFIGURATION %I ALTER MAPPING FOR hword, hword_part, word WITH unaccent, pg_catalog.%I',
      'ts_' || config.name, config.dict
    );
  END LOOP;
END $$;
"""

DROP = """
DO $$
DECLARE config record;
BEGIN
  FOR config IN SELECT cfgname FROM pg_ts_config WHERE cfgnamespace = current_schema()::regnamespace AND cfgname LIKE 'ts\\_%'
  LOOP
    EXECUTE format('DROP TEXT SEARCH CONFIGURATION %I', config.cfgname);
  END LOOP;
END $$;
"""


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        CreateExtension("vector"),
        CreateExtension("unaccent"),
        migrations.RunSQL(CREATE, DROP),
    ]
