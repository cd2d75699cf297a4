import MartletCore
import MartletJSON

private let limits = JSONLimits(maximumDepth: 64, maximumBytes: 64 * 1024)

/// What is accepted is written back to something that reads as the same value.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    let value: JSONValue
    do { value = try JSON.parse(bytes, limits: limits) } catch {
        precondition(error.offset >= 0 && error.offset <= max(bytes.count, limits.maximumBytes))
        return 0
    }
    walk(value)
    let written = JSON.write(value)
    guard let again = try? JSON.parse(written, limits: JSONLimits(maximumDepth: 64, maximumBytes: .max)) else {
        preconditionFailure("what was written cannot be read")
    }
    precondition(again == value)
    precondition(JSON.write(again) == written)
    return 0
}

private func walk(_ value: JSONValue) {
    _ = (value.int64, value.double, value.bool, value.string)
    for element in value.array ?? [] { walk(element) }
    for member in value.object?.members ?? [] {
        precondition(value.object?[member.name] == member.value)
        walk(member.value)
    }
}
