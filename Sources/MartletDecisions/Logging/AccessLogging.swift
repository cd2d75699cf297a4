package import MartletCore

/// The format of access records.
@usableFromInline package enum AccessFormat: Sendable { case json, text }

/// The sink of access records; writing never blocks: a sink that cannot keep up drops and counts.
package protocol AccessLogging: Sendable {
    var format: AccessFormat { get }
    /// The name of the process in every record: visible ASCII without `"` and `\\`; none if empty.
    var instanceID: String { get }
    /// Takes whole lines, and leaves an empty buffer.
    func take(_ lines: inout ByteBuffer)
}

extension AccessLogging {
    package var instanceID: String { "" }
}
