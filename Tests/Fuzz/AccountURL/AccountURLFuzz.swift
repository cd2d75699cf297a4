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
    }
    // What is said of a URL repeats nothing of it.
    let secret = "QZXJKVWY"
    do {
        let url = try AccountURL(text + secret)
        if case .postgresql = url { precondition(!"\(url)".contains(secret)) }
    } catch {
        precondition(!"\(error)".contains(secret))
    }
    return 0
}
