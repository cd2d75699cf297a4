import MartletCore
import MartletCrypto
import PasswordProvider

/// Whatever a client presents: a token has one spelling, and names and passwords have one normal form.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    if let basic = BasicCredential(bytes) {
        let pair = basic.name + [UInt8(ascii: ":")] + basic.password.withBytes { $0 }
        precondition(Array(Base64.encode(pair, padding: .required).utf8) == bytes)
        precondition(!basic.name.contains(UInt8(ascii: ":")) && !pair.contains { $0 < 0x20 || $0 == 0x7F })
    }
    // A copy: a secret wipes what it was made of.
    if let text = try? PasswordText(Secret(bytes.map { $0 })) {
        precondition((1...2).contains(text.candidates.count) && text.codePoints > 0)
        precondition(text.normalized.count <= PasswordText.maximumBytes)
        let again = try? PasswordText(text.normalized)
        precondition(again?.candidates.count == 1)
    }
    if let name = String(validating: bytes, as: UTF8.self), let key = UserName.canonical(name) {
        precondition(UserName.canonical(key)?.utf8.elementsEqual(key.utf8) == true && key.utf8.count <= 255)
    }
    return 0
}
