/// The lines of a trailer section that was received in HTTP/2 frames, as text.
package enum TrailerLines {
    /// The field of the line at `offset`, which is advanced; `nil` at the end or where there is no field.
    package static func next(_ bytes: Span<UInt8>, from offset: inout Int) -> HeadField? {
        guard offset < bytes.count else { return nil }
        var field = HeadField.none
        guard case .next(let next) = FieldLine.read(bytes, at: offset, into: &field) else { return nil }
        offset = next
        return field
    }
}
