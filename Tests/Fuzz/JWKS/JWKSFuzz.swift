import MartletCrypto
import MartletJOSE

/// Whatever the document says, keys are within bounds and verifying with them is safe.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    guard let set = try? KeySet(document: bytes, allowing: Set(SignatureAlgorithm.allCases)) else { return 0 }
    precondition((1...KeySet.maximumKeys).contains(set.keys.count))
    for (id, key) in set.keys {
        precondition(key.id == id)
        let length: Int
        switch key.parts {
        case .rsa(let modulus, let exponent):
            precondition((256...1024).contains(modulus.count) && exponent.count <= 8)
            length = modulus.count
        case .p256: length = 64
        case .p384: length = 96
        case .p521: length = 132
        case .ed25519: length = 64
        case .ed448: length = 114
        }
        let signature = [UInt8](repeating: 1, count: length)
        precondition(!key.algorithms.isEmpty && key.algorithms.allSatisfy(key.parts.algorithms.contains))
        for algorithm in key.algorithms {
            precondition(!key.verify(signature: signature, signingInput: bytes, as: algorithm))
        }
        precondition(key.parts.thumbprint.utf8.count == 43)
    }
    return 0
}
