import MartletCore
import MartletRedis

private let seal = StoreSeal(
    keys: [Secret([UInt8](repeating: 7, count: StoreSeal.keyLength))], clock: .system,
    logger: Logger(NoLines(), minimum: .error))

private struct NoLines: LogWriting {
    func write(_ level: LogLevel, _ event: String, _ fields: [(String, String)]) {}
}

/// A value as anyone who may write to the store could store it: its form has one spelling, and it does not verify.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSealedForm(_ data: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    let stored = unsafe Array(UnsafeBufferPointer(start: data, count: count))
    let form = SealedForm(stored)
    if let bytes = form.bytes { precondition(bytes == stored && SealedForm(bytes) == form, "a second spelling") }
    precondition((form == .unsealed) == (stored.first != 0xF5))
    let channel = Array("martlet:revoked".utf8)
    precondition(seal?.open(stored, as: .code, named: channel) == nil, "forged")
    precondition(seal?.open(message: stored, on: channel) == nil, "forged")
    return 0
}
