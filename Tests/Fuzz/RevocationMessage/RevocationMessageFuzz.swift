import MartletSession

/// A message as any client that may publish could send it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRevocationMessage(_ data: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    let message = unsafe Array(UnsafeBufferPointer(start: data, count: count))
    guard let numbers = RevocationMessage.numbers(in: message) else { return 0 }
    precondition(!numbers.isEmpty && numbers.count * 16 == count && count <= RevocationMessage.maximumBytes)
    let written = numbers.flatMap { number in
        let digits = String(number, radix: 16)
        return Array(String(repeating: "0", count: 16 - digits.utf8.count).utf8) + digits.utf8
    }
    precondition(written == message, "a second spelling")
    return 0
}
