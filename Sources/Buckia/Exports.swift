// `import Buckia` is enough for every name of the public interface. Of the modules below only what it names is public.
@_exported import BuckiaAge
@_exported import BuckiaApply
@_exported import BuckiaDiff
@_exported import BuckiaIdentities
@_exported import BuckiaJSON
@_exported import BuckiaKSUID
@_exported import BuckiaLedger
@_exported import BuckiaSchemaPlans
@_exported import BuckiaSharing
@_exported import SQLiteChangesets
@_exported import SQLiteSchemas
