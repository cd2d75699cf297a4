import APIKeyProvider
import MartletCore
import MartletCrypto

/// Whatever a client presents as a key, or stands in a file of keys: a key has one spelling, and a file that can be read
/// is written so that it has the same keys.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    if let key = try? APIKeyText(bytes) {
        let text = String(decoding: bytes, as: UTF8.self)
        precondition(text.hasPrefix(APIKeyText.prefix + key.id) && bytes.count == 92)
    }
    // The fuzzer finds no checksum by itself.
    if bytes.count == 84 {
        let whole = bytes + Hexadecimal.text(SHA256.digest(bytes).prefix(4)).utf8
        let isLower = bytes.dropFirst(4).allSatisfy { Hexadecimal.bytes("0" + String(UnicodeScalar($0))) != nil }
        precondition(((try? APIKeyText(whole)) != nil) == (isLower && bytes.starts(with: APIKeyText.prefix.utf8)))
    }
    if let table = try? KeyTable(bytes) {
        let written = table.bytes
        precondition(
            written.split(separator: 0x0A).contains { $0.count > 64 * 1024 } || (try? KeyTable(written)) == table)
    }
    return 0
}
