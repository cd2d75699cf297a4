import MartletHTTP

/// What is accepted is written to something that reads as the same value, and is written the same again.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    if let item = try? StructuredField.item(bytes) {
        var written: [UInt8] = []
        item.append(to: &written)
        precondition((try? StructuredField.item(written)) == item)
        check(written)
    }
    if let list = try? StructuredField.list(bytes) {
        let written = StructuredField.serialized(list)
        precondition((try? StructuredField.list(written)) == list && list.count <= StructuredField.maximumMembers)
        check(written)
    }
    if let dictionary = try? StructuredField.dictionary(bytes) {
        let written = StructuredField.serialized(dictionary)
        precondition((try? StructuredField.dictionary(written)) == dictionary)
        precondition(Set(dictionary.map(\.key)).count == dictionary.count)
        check(written)
    }
    return 0
}

private func check(_ written: [UInt8]) { precondition(written.allSatisfy { (0x20...0x7E).contains($0) }) }
