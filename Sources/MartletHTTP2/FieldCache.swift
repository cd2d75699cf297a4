internal import CNghttp2

/// The fields of the last header block, so that a field that is the same object of nghttp2's is not checked again.
///
/// nghttp2 reports a field that is in the table of HPACK by the object in the table. The cache holds a reference to it,
/// so the same object has the same bytes.
@safe struct FieldCache: ~Copyable {
    @safe private struct Entry {
        var name: OpaquePointer?
        var value: OpaquePointer?
        var nameBytes: UnsafeBufferPointer<UInt8>
        var valueBytes: UnsafeBufferPointer<UInt8>
        var checked: CheckedField

        init() {
            unsafe name = nil
            unsafe value = nil
            unsafe nameBytes = UnsafeBufferPointer(start: nil, count: 0)
            unsafe valueBytes = UnsafeBufferPointer(start: nil, count: 0)
            checked = CheckedField()
        }
    }

    /// Fields of a block that are cached.
    private static let capacity = 24
    /// A larger value is in no table.
    private static let longestValue = 4096

    private let entries: UnsafeMutablePointer<Entry>
    private var index = 0

    init() {
        unsafe entries = .allocate(capacity: FieldCache.capacity)
        unsafe entries.initialize(repeating: Entry(), count: FieldCache.capacity)
    }

    deinit {
        for index in 0..<FieldCache.capacity {
            unsafe nghttp2_rcbuf_decref(entries[index].name)
            unsafe nghttp2_rcbuf_decref(entries[index].value)
        }
        unsafe entries.deallocate()
    }

    /// Begins another block.
    mutating func begin() { index = 0 }

    /// Hands the next field of the block to the writer.
    @inline(__always)
    mutating func add(_ name: OpaquePointer, _ value: OpaquePointer, to writer: inout HeadWriter) {
        let entry = unsafe entries + min(index, FieldCache.capacity &- 1)
        index &+= 1
        if unsafe entry.pointee.name == name && entry.pointee.value == value {
            return unsafe writer.add(entry.pointee.nameBytes, entry.pointee.valueBytes, entry.pointee.checked)
        }
        unsafe addFresh(name, value, entry, to: &writer)
    }

    @inline(never)
    private func addFresh(
        _ name: OpaquePointer, _ value: OpaquePointer, _ entry: UnsafeMutablePointer<Entry>,
        to writer: inout HeadWriter
    ) {
        let (nameText, valueText) = unsafe (nghttp2_rcbuf_get_buf(name), nghttp2_rcbuf_get_buf(value))
        let nameBytes = unsafe UnsafeBufferPointer(start: UnsafePointer(nameText.base), count: nameText.len)
        let valueBytes = unsafe UnsafeBufferPointer(start: UnsafePointer(valueText.base), count: valueText.len)
        guard let checked = unsafe writer.check(nameBytes, valueBytes) else {
            return unsafe writer.add(nameBytes, valueBytes)
        }
        if valueBytes.count <= FieldCache.longestValue {
            unsafe nghttp2_rcbuf_incref(name)
            unsafe nghttp2_rcbuf_incref(value)
            unsafe nghttp2_rcbuf_decref(entry.pointee.name)
            unsafe nghttp2_rcbuf_decref(entry.pointee.value)
            unsafe entry.pointee.name = name
            unsafe entry.pointee.value = value
            unsafe entry.pointee.nameBytes = nameBytes
            unsafe entry.pointee.valueBytes = valueBytes
            unsafe entry.pointee.checked = checked
        }
        unsafe writer.add(nameBytes, valueBytes, checked)
    }
}

/// What the check of a field has found, which depends on its bytes alone.
struct CheckedField {
    /// For a pseudo-header field of a request.
    var part: RequestPseudoHeaders.Part?
    var traits: RequestPseudoHeaders.Traits = []
    /// For a regular field.
    var special = SpecialName.other
    var hasObsText = false
}
