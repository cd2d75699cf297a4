import MartletCore
import MartletSession

/// A record of any origin: what is read from it survives writing and reading.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSessionRecord(_ data: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    let bytes = unsafe Array(UnsafeBufferPointer(start: data, count: count))
    guard let record = SessionRecord(bytes) else { return 0 }
    precondition(count <= SessionRecord.maximumBytes)
    let written = record.bytes
    // Escapes may make it longer than it came.
    guard written.count <= SessionRecord.maximumBytes else { return 0 }
    guard let again = SessionRecord(written) else { preconditionFailure("it does not read back") }
    precondition(
        again.bytes == written && again.claims == record.claims && again.subject.utf8.elementsEqual(record.subject.utf8)
            && again.keyThumbprint == record.keyThumbprint)
    // Whoever knows no bindings must not read a bound session as a bearer's.
    if record.keyThumbprint != nil { precondition(!written.starts(with: Array(#"{"v":1,"#.utf8))) }
    return 0
}
