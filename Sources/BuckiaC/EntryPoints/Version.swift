import BuckiaBytes
import Buckia
import CBuckia

/// Made once, and never freed: C may keep the pointer.
private let version = CText(Version.number)

@c @implementation
package func buckia_abi_version() -> Int32 { BUCKIA_ABI_VERSION }

@c @implementation
package func buckia_version() -> UnsafePointer<CChar>? { version.pointer }

@c @implementation
package func buckia_version_text() -> UnsafeMutablePointer<CChar>? { strdup(Version.text) }

@c @implementation
package func buckia_free(_ memory: UnsafeMutableRawPointer?) { free(memory) }
