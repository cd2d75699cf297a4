import MartletCrypto
import PasswordProvider

/// Whatever a stored hash or a file of users says: what is accepted has one spelling, and asks for bounded work.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    if let hash = try? PasswordHash(bytes) {
        precondition(Array(hash.encoded.utf8) == bytes && bytes.first == UInt8(ascii: "$") && !bytes.contains(0))
        if hash.work.algorithm != .argon2id { precondition(hash.needsRehash(.standard)) }
        if let cost = hash.work.bcryptCost { precondition((4...15).contains(cost) && bytes.count == 60) }
    }
    do {
        let file = try Htpasswd(bytes)
        precondition(file.count <= bytes.count && file.weakLines.count <= file.count)
    } catch {
        precondition((1...20).contains(error.errors.count))
    }
    return 0
}
