import Buckia
import CBuckia

@c @implementation
package func buckia_row_set(
  _ row: OpaquePointer?, _ column: UnsafePointer<CChar>?, _ value: UnsafePointer<buckia_value>?
) -> buckia_status {
  call(nil) {
    let row: RowAnswer = try Handle.required(row, "row")
    let column = try Arguments.text(column, "column")
    guard let value else { throw Arguments.misuse("value is NULL") }
    row.set(column, try ChangesetValue(value.pointee, of: column))
  }
}
