import MartletCore
import MartletProvider

private let names = ["code", "id_token", "state", "user", "error"]

/// What is read is bounded, reads the same when it is written again, and is rejected when it is written twice.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    guard let fields = try? CallbackFields(encoded: bytes, sentBy: .formPost) else { return 0 }
    precondition(bytes.count <= CallbackFields.maximumBytes)
    for name in names {
        guard let value = try? fields.secret(name, maximumBytes: 64) else { continue }
        precondition((1...64).contains(value.count))
        let pair =
            Array("\(name)=".utf8)
            + value.withBytes { $0.flatMap { Array("%\(digit($0 >> 4))\(digit($0 & 15))".utf8) } }
        let again = try? CallbackFields(encoded: pair, sentBy: .query).secret(name, maximumBytes: 64)
        precondition(again?.withBytes { $0 } == value.withBytes { $0 })
        precondition((try? CallbackFields(encoded: pair + [0x26] + pair, sentBy: .query)) == nil)
        precondition((try? fields.secret(name, maximumBytes: value.count - 1)) == nil)
        precondition((try? fields.text(name, maximumBytes: 64)).flatMap { $0 }?.utf8.count == value.count)
    }
    if let state = fields.state { precondition((1...128).contains(state.utf8.count)) }
    return 0
}

private func digit(_ value: UInt8) -> String { String(value, radix: 16, uppercase: true) }
