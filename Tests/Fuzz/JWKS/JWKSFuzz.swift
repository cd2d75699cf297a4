import MartletCrypto
import MartletJOSE

/// Whatever the document says, keys are within bounds and verifying with them is safe.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    guard let set = try? KeySet(document: bytes, allowing: [.rs256, .es256]) else { return 0 }
    precondition((1...KeySet.maximumKeys).contains(set.keys.count))
    for (id, key) in set.keys {
        precondition(key.id == id)
        let signature: [UInt8]
        switch key.parts {
        case .rsa(let modulus, let exponent):
            precondition(key.algorithm == .rs256 && (256...1024).contains(modulus.count) && exponent.count <= 8)
            signature = [UInt8](repeating: 1, count: modulus.count)
        case .p256:
            precondition(key.algorithm == .es256)
            signature = [UInt8](repeating: 1, count: 64)
        }
        precondition(!key.verify(signature: signature, signingInput: bytes))
    }
    return 0
}
