// `import BuckiaSync` is enough for every name of its public interface, and for what `import Buckia` brings.
@_exported import Buckia
@_exported import BuckiaBackup
@_exported import BuckiaStorage

#if !Sync
  #error("BuckiaSync is built with the trait Sync: .package(…, traits: [.defaults, \"Sync\"])")
#endif
