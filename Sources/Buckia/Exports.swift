// `import Buckia` is enough for every name of the public interface. Of the modules below only what it names is public. The files of this module
// need no imports of them either.
@_exported import BuckiaFormat
@_exported import BuckiaApply
@_exported import BuckiaDiff
@_exported import BuckiaBytes
@_exported import BuckiaLedger
@_exported import SQLiteSchemas
@_exported import BuckiaSharing
@_exported import SQLiteChangesets
