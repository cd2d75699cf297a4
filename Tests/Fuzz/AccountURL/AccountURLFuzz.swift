import MartletAccounts
import MartletCore

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzAccountURL(_ data: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    let text = String(decoding: UnsafeBufferPointer(start: data, count: count), as: UTF8.self)
    do {
        switch try AccountURL(text) {
        case .sqlite(let path): precondition(!path.isEmpty && !path.utf8.contains(0))
        case .postgresql(let url): precondition(url.count == text.utf8.count)
        }
    } catch {
        precondition(error.code == .accountsBadURL)
        // What is said of a URL that cannot be read repeats nothing of it.
        if text.utf8.count > 12 { precondition(!error.message.contains(text)) }
    }
    return 0
}
