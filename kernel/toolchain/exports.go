package toolchain

// exports are names that packages of the standard library export. goimports finds a package by the last element of its path,
// which no other package of the standard library shares with one of these, and by all the names that are used of it.
var exports = map[string]string{
	"bytes": `
		Buffer Clone Compare Contains ContainsAny ContainsFunc ContainsRune Count Cut CutPrefix CutSuffix Equal EqualFold
		ErrTooLarge Fields FieldsFunc FieldsFuncSeq FieldsSeq HasPrefix HasSuffix Index IndexAny IndexByte IndexFunc IndexRune
		Join LastIndex LastIndexAny LastIndexByte LastIndexFunc Lines Map MinRead NewBuffer NewBufferString NewReader Reader
		Repeat Replace ReplaceAll Runes Split SplitAfter SplitAfterN SplitAfterSeq SplitN SplitSeq Title ToLower
		ToLowerSpecial ToTitle ToTitleSpecial ToUpper ToUpperSpecial ToValidUTF8 Trim TrimFunc TrimLeft TrimLeftFunc
		TrimPrefix TrimRight TrimRightFunc TrimSpace TrimSuffix `,
	"errors": `
		As AsType ErrUnsupported Is Join New Unwrap `,
	"flag": `
		Arg Args Bool BoolFunc BoolVar CommandLine ContinueOnError Duration DurationVar ErrHelp ErrorHandling ExitOnError Flag
		FlagSet Float64 Float64Var Func Getter Int Int64 Int64Var IntVar Lookup NArg NFlag NewFlagSet PanicOnError Parse
		Parsed PrintDefaults Set String StringVar TextVar Uint Uint64 Uint64Var UintVar UnquoteUsage Usage Value Var Visit
		VisitAll `,
	"fmt": `
		Append Appendf Appendln Errorf FormatString Formatter Fprint Fprintf Fprintln Fscan Fscanf Fscanln GoStringer Print
		Printf Println Scan ScanState Scanf Scanln Scanner Sprint Sprintf Sprintln Sscan Sscanf Sscanln State Stringer `,
	"io": `
		ByteReader ByteScanner ByteWriter Closer Copy CopyBuffer CopyN Discard EOF ErrClosedPipe ErrNoProgress ErrShortBuffer
		ErrShortWrite ErrUnexpectedEOF LimitReader LimitedReader MultiReader MultiWriter NewOffsetWriter NewSectionReader
		NopCloser OffsetWriter Pipe PipeReader PipeWriter ReadAll ReadAtLeast ReadCloser ReadFull ReadSeekCloser ReadSeeker
		ReadWriteCloser ReadWriteSeeker ReadWriter Reader ReaderAt ReaderFrom RuneReader RuneScanner SectionReader SeekCurrent
		SeekEnd SeekStart Seeker StringWriter TeeReader WriteCloser WriteSeeker WriteString Writer WriterAt WriterTo `,
	"maps": `
		All Clone Collect Copy DeleteFunc Equal EqualFunc Insert Keys Values `,
	"math": `
		Abs Acos Acosh Asin Asinh Atan Atan2 Atanh Cbrt Ceil Copysign Cos Cosh Dim E Erf Erfc Erfcinv Erfinv Exp Exp2 Expm1
		FMA Float32bits Float32frombits Float64bits Float64frombits Floor Frexp Gamma Hypot Ilogb Inf IsInf IsNaN J0 J1 Jn
		Ldexp Lgamma Ln10 Ln2 Log Log10 Log10E Log1p Log2 Log2E Logb Max MaxFloat32 MaxFloat64 MaxInt MaxInt16 MaxInt32
		MaxInt64 MaxInt8 MaxUint MaxUint16 MaxUint32 MaxUint64 MaxUint8 Min MinInt MinInt16 MinInt32 MinInt64 MinInt8 Mod Modf
		NaN Nextafter Nextafter32 Phi Pi Pow Pow10 Remainder Round RoundToEven Signbit Sin Sincos Sinh SmallestNonzeroFloat32
		SmallestNonzeroFloat64 Sqrt Sqrt2 SqrtE SqrtPhi SqrtPi Tan Tanh Trunc Y0 Y1 Yn `,
	"os": `
		Args Chdir Chmod Chown Chtimes Clearenv CopyFS Create CreateTemp DevNull DirEntry DirFS Environ ErrClosed
		ErrDeadlineExceeded ErrExist ErrInvalid ErrNoDeadline ErrNoHandle ErrNotExist ErrPermission ErrProcessDone Executable
		Exit Expand ExpandEnv File FileInfo FileMode FindProcess Getegid Getenv Geteuid Getgid Getgroups Getpagesize Getpid
		Getppid Getuid Getwd Hostname Interrupt IsExist IsNotExist IsPathSeparator IsPermission IsTimeout Kill Lchown Link
		LinkError LookupEnv Lstat Mkdir MkdirAll MkdirTemp ModeAppend ModeCharDevice ModeDevice ModeDir ModeExclusive
		ModeIrregular ModeNamedPipe ModePerm ModeSetgid ModeSetuid ModeSocket ModeSticky ModeSymlink ModeTemporary ModeType
		NewFile NewSyscallError O_APPEND O_CREATE O_EXCL O_RDONLY O_RDWR O_SYNC O_TRUNC O_WRONLY Open OpenFile OpenInRoot
		OpenRoot PathError PathListSeparator PathSeparator Pipe ProcAttr Process ProcessState ReadDir ReadFile Readlink Remove
		RemoveAll Rename Root SEEK_CUR SEEK_END SEEK_SET SameFile Setenv Signal StartProcess Stat Stderr Stdin Stdout Symlink
		SyscallError TempDir Truncate Unsetenv UserCacheDir UserConfigDir UserHomeDir WriteFile `,
	"slices": `
		All AppendSeq Backward BinarySearch BinarySearchFunc Chunk Clip Clone Collect Compact CompactFunc Compare CompareFunc
		Concat Contains ContainsFunc Delete DeleteFunc Equal EqualFunc Grow Index IndexFunc Insert IsSorted IsSortedFunc Max
		MaxFunc Min MinFunc Repeat Replace Reverse Sort SortFunc SortStableFunc Sorted SortedFunc SortedStableFunc Values `,
	"sort": `
		Find Float64Slice Float64s Float64sAreSorted IntSlice Interface Ints IntsAreSorted IsSorted Reverse Search
		SearchFloat64s SearchInts SearchStrings Slice SliceIsSorted SliceStable Sort Stable StringSlice Strings
		StringsAreSorted `,
	"strconv": `
		AppendBool AppendFloat AppendInt AppendQuote AppendQuoteRune AppendQuoteRuneToASCII AppendQuoteRuneToGraphic
		AppendQuoteToASCII AppendQuoteToGraphic AppendUint Atoi CanBackquote ErrRange ErrSyntax FormatBool FormatComplex
		FormatFloat FormatInt FormatUint IntSize IsGraphic IsPrint Itoa NumError ParseBool ParseComplex ParseFloat ParseInt
		ParseUint Quote QuoteRune QuoteRuneToASCII QuoteRuneToGraphic QuoteToASCII QuoteToGraphic QuotedPrefix Unquote
		UnquoteChar `,
	"strings": `
		Builder Clone Compare Contains ContainsAny ContainsFunc ContainsRune Count Cut CutPrefix CutSuffix EqualFold Fields
		FieldsFunc FieldsFuncSeq FieldsSeq HasPrefix HasSuffix Index IndexAny IndexByte IndexFunc IndexRune Join LastIndex
		LastIndexAny LastIndexByte LastIndexFunc Lines Map NewReader NewReplacer Reader Repeat Replace ReplaceAll Replacer
		Split SplitAfter SplitAfterN SplitAfterSeq SplitN SplitSeq Title ToLower ToLowerSpecial ToTitle ToTitleSpecial ToUpper
		ToUpperSpecial ToValidUTF8 Trim TrimFunc TrimLeft TrimLeftFunc TrimPrefix TrimRight TrimRightFunc TrimSpace TrimSuffix `,
	"sync": `
		Cond Locker Map Mutex NewCond Once OnceFunc OnceValue OnceValues Pool RWMutex WaitGroup `,
	"time": `
		ANSIC After AfterFunc April August Date DateOnly DateTime December Duration February FixedZone Friday Hour January
		July June Kitchen Layout LoadLocation LoadLocationFromTZData Local Location March May Microsecond Millisecond Minute
		Monday Month Nanosecond NewTicker NewTimer November Now October Parse ParseDuration ParseError ParseInLocation RFC1123
		RFC1123Z RFC3339 RFC3339Nano RFC822 RFC822Z RFC850 RubyDate Saturday Second September Since Sleep Stamp StampMicro
		StampMilli StampNano Sunday Thursday Tick Ticker Time TimeOnly Timer Tuesday UTC Unix UnixDate UnixMicro UnixMilli
		Until Wednesday Weekday `,
}
